# Restarts the Mac. All processes end and the disk is synced: the provider's
# call is like pulling the plug.
exec shutdown -r now
