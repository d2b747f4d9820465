use strict;
my $limit = shift @ARGV;
my $pid = fork;
if (!defined $pid) { print STDERR "watchdog: fork: $!\n"; exit 126; }
if ($pid == 0) {
  setpgrp(0, 0);
  exec { $ARGV[0] } @ARGV or do { print STDERR "watchdog: exec $ARGV[0]: $!\n"; exit 127; };
}
setpgrp($pid, $pid);
my $late = 0;
$SIG{ALRM} = sub { kill(($late++ ? 'KILL' : 'TERM'), -$pid); alarm 1; };
alarm $limit;
waitpid $pid, 0;
my $status = $?;
alarm 0;
kill 'KILL', -$pid;
if ($late) { print STDERR "watchdog: stopped after $limit s\n"; exit 124; }
exit($status & 127 ? 128 + ($status & 127) : $status >> 8);
