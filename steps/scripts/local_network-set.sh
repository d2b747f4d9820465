# Lets every program use these networks from the next start of the Mac on. $@ the networks.
set -e
defaults write com.apple.network.local-network AllowedEthernetLocalNetworkAddresses -array "$@"
defaults write com.apple.network.local-network AllowedWiFiLocalNetworkAddresses -array "$@"
sync
