# Uses: receipt put service
# Deletes the job, the program, the wrapper and, last, the receipt, which marks them as macfleet's.
set -e
label=dev.macfleet.node-exporter
begin node_exporter
leave "system/$label"
rm -rf /usr/local/lib/macfleet/.node_exporter.new.*
rm -f "/Library/LaunchDaemons/$label.plist" /usr/local/bin/node_exporter "$receipts/node_exporter-run" /var/log/node_exporter.log
rm -f "$receipts/node_exporter.job" "$receipts/node_exporter.receipt"
sync
