exec ioreg -rd1 -c IOPlatformExpertDevice
