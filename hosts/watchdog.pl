# Runs the questions of an exchange one by one. Each runs in a separate process group, which is killed with all that it
# started after its end or after the limit. Arguments: a prologue, and five for each question: its id, root or user, the
# number of its arguments, 1 if it reads input, its script. Stdin: one line each for the mark, the login user and the
# limit in seconds, then each argument and input, preceded by a line with its length.
use strict;
binmode STDIN;
sub line { my $line = <STDIN>; exit 91 unless defined $line && chomp $line; $line }
sub value {
  my ($length, $value) = (line, "");
  exit 91 unless $length =~ /^[0-9]+\z/ && read(STDIN, $value, $length) == $length;
  $value;
}
sub both { syswrite STDOUT, $_[0]; syswrite STDERR, $_[0] }
my ($mark, $user, $limit) = (line, line, line);
my ($prologue, @asked) = @ARGV;
my @questions;
while (my ($id, $as, $count, $piped, $script) = splice @asked, 0, 5) {
  my @args = map { value } 1 .. $count;
  push @questions, [$id, $as, $piped ? value : undef, "/bin/sh", "-c", $prologue . $script, "sh", @args];
}
my $root = $> == 0;
my $other = $user ne getpwuid $>;
my @account = getpwnam $user;
my $groups;
sub groups {
  return if defined $groups || !@account;
  open my $list, "-|", "id", "-G", $user or return;
  my @all = split " ", <$list>;
  close $list;
  # macOS takes 16.
  $groups = join " ", @all[0 .. ($#all < 15 ? $#all : 15)];
}
sub become {
  my ($uid, $gid, $home, $shell) = @account[2, 3, 7, 8] or return;
  $( = $gid;
  $) = "$gid $groups";
  ($<, $>) = ($uid, $uid);
  @ENV{qw(HOME USER LOGNAME SHELL)} = ($home, $user, $user, $shell);
  $groups && $< == $uid && $> == $uid;
}
sub ask {
  my ($change, $input, @command) = @_;
  pipe my $from, my $to or return failed("pipe: $!");
  my $pid = fork;
  return failed("fork: $!") unless defined $pid;
  if ($pid == 0) {
    setpgrp 0, 0;
    defined $input ? open STDIN, "<&", $from : open STDIN, "<", "/dev/null" or exit failed("stdin: $!");
    exit failed("cannot become $user") if $change && !become;
    exec { $command[0] } @command or exit failed("exec $command[0]: $!");
  }
  setpgrp $pid, $pid;
  close $from;
  my $late = 0;
  local $SIG{ALRM} = sub { kill(($late++ ? "KILL" : "TERM"), -$pid); alarm 1 };
  alarm $limit;
  feed($to, $input) if defined $input;
  close $to;
  waitpid $pid, 0;
  my $status = $?;
  alarm 0;
  kill "KILL", -$pid;
  if ($late) { syswrite STDERR, "watchdog: stopped after $limit s\n"; return 124 }
  $status & 127 ? 128 + ($status & 127) : $status >> 8;
}
sub feed {
  my ($to, $input) = @_;
  local $SIG{PIPE} = "IGNORE";
  while (length $input) {
    my $sent = syswrite $to, $input;
    if (defined $sent) { substr $input, 0, $sent, "" } elsif ($! != 4) { return } # EINTR
  }
}
sub failed { syswrite STDERR, "watchdog: $_[0]\n"; 126 }
syswrite STDOUT, "\n$mark host $>\n";
for (@questions) {
  my ($id, $as, @rest) = @$_;
  my $change = $as eq "user" && $other;
  both "\n$mark begin $id\n";
  my $status = "needs-root";
  if ($root || $as eq "user" && !$other) {
    groups if $change;
    $status = ask($change, @rest);
  }
  both "\n$mark end $status\n";
}
syswrite STDOUT, "\n$mark done\n";
