# Uses: put daemon
# Ends tailscale down: the daemon has its node key and connects again. With any flag, also --timeout, "up" refuses unless every setting
# that is not a default is mentioned, and a person may have made such settings.
set -e
begin tailscale
client up </dev/null
steady 15
sync
