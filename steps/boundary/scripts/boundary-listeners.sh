# Uses: answer
# Prints the sockets that accept connections, and the host's address in the tailnet.
code=0
netstat -an -p tcp || code=$?
say "listeners $code"
if [ -x /usr/local/bin/tailscale ]; then
  code=0
  /bin/sh -c 'exec /usr/local/bin/tailscale ip -4' 2>/dev/null </dev/null || code=$?
  say "address $code"
fi
say end
