# The tools of a Mac, as far as the scripts of the firewall need them. Their state is files in $STATE.
case $name in
ifconfig) [ -f "$STATE/bridge" ]; exit ;;
ps) [ ! -f "$STATE/ps" ] || cat "$STATE/ps"; exit ;;
stat)
	shift 2
	for path; do echo "1 2 3|4|0:0:644|root:wheel:644|$path"; done
	exit ;;
launchctl)
	case $1 in
	print) [ -f "$STATE/loaded" ] && exit 0; exit 113 ;;
	bootout) rm -f "$STATE/loaded" ;;
	bootstrap) [ ! -f "$STATE/loaded" ] || exit 5; cp "$3" "$STATE/loaded" ;;
	esac
	exit ;;
chown | sync | sleep) exit 0 ;;
esac
echo "No ALTQ support in kernel" >&2
anchor=main
[ "$1" != -a ] || { anchor=$2; shift 2; }
busy() { echo "$1:3: cannot define table vm_sources: Resource busy" >&2; echo "pfctl: Syntax error in config file: pf rules not loaded" >&2; exit 1; }
wrong() { echo "$1:1: syntax error" >&2; echo "pfctl: Syntax error in config file: pf rules not loaded" >&2; exit 1; }
case "$1 $2" in
"-s info") if [ -f "$STATE/enabled" ]; then echo "Status: Enabled for 0 days"; else echo "Status: Disabled"; fi ;;
"-s rules") [ ! -f "$STATE/$anchor.rules" ] || grep -e ^block -e ^anchor -e ^scrub "$STATE/$anchor.rules" ;;
"-s nat") grep -e ^nat -e ^rdr "$STATE/main.rules" ;;
"-s Tables") for t in "$STATE/$anchor".table.*; do [ ! -f "$t" ] || echo "${t##*.table.}"; done ;;
"-s Anchors") [ -z "$3" ] || exit 0; for a in "$STATE"/*.rules; do a=${a##*/}; echo "  ${a%.rules}"; done ;;
"-t "*) table=$STATE/$anchor.table.$2
	case "$4 $5" in
	"show ") [ -f "$table" ] || exit 1; cat "$table" ;;
	"kill ") [ -f "$table" ] || exit 1; rm -f "$table" "$STATE/$anchor.busy" ;;
	"add -f") cat "$6" >>"$table"; sort -u -o "$table" "$table" ;;
	esac ;;
"-F rules") rm -f "$STATE/$anchor.rules" ;;
"-nf "*) [ ! -f "$STATE/always-busy" ] || busy "$2"; ! grep -q nonsense "$2" || wrong "$2" ;;
"-f "*)
	[ ! -f "$STATE/$anchor.busy" ] || busy "$2"
	! grep -q nonsense "$2" || wrong "$2"
	cp "$2" "$STATE/$anchor.rules"
	if [ "$anchor" = main ]; then
		for t in "$STATE"/main.table.*; do [ ! -f "$t" ] || : >"$t"; done
	else
		rm -f "$STATE/$anchor.table."*
		while read -r word name rest; do
			name=${name#<}
			[ "$word" != table ] || echo "$rest" | tr -d '{},' | tr -s ' ' '\n' | grep . >"$STATE/$anchor.table.${name%>}"
		done <"$2"
	fi ;;
"-E ") [ ! -f "$STATE/reference" ] || exit 1; : >"$STATE/enabled"; : >"$STATE/reference"; echo "Token : 77" ;;
"-e ") : >"$STATE/enabled" ;;
"-X 77") rm -f "$STATE/reference"; [ -f "$STATE/others" ] || rm -f "$STATE/enabled" ;;
"-s References") echo "TOKENS:"; [ ! -f "$STATE/reference" ] || echo "5001     pfctl          77        0 days" ;;
"-s dummynet") grep ^dummynet "$STATE/main.rules" ;;
"-R -f")
	! grep -q nonsense "$3" || wrong "$3"
	{ grep -e ^scrub "$3"; grep -e ^nat -e ^rdr "$STATE/main.rules"; grep -v ^scrub "$3"; } >"$STATE/main.rules.new"
	mv "$STATE/main.rules.new" "$STATE/main.rules"
	[ ! -f "$STATE/loses" ] || { grep -v internet-sharing "$STATE/main.rules" >"$STATE/lost"; mv "$STATE/lost" "$STATE/main.rules"; }
	[ ! -f "$STATE/ends" ] || rm -f "$STATE/bridge" ;;
"-vs nat") ;;
*) echo "pfctl: no such call: $*" >&2; exit 64 ;;
esac
