# SPDX-License-Identifier: MIT
#
# Perl guest: fork, pipes, signals, alarms, threads, sockets, eval and formats.
use strict;
use warnings;
use threads;
use threads::shared;
use Socket;
use POSIX ();

$| = 1;

pipe(my $reader, my $writer) or die $!;
my $pid = fork();
if ($pid == 0) {
    close $reader;
    print {$writer} "line $_\n" for 1 .. 3;
    close $writer;
    POSIX::_exit(5);
}
close $writer;
print "child said: $_" while <$reader>;
waitpid($pid, 0);
print "child status: ", $? >> 8, "\n";

print "backticks: ", `echo from a shell; exit 3`, "status: ", $? >> 8, "\n";
system('kill -KILL $$');
print "system: signal ", $? & 127, "\n";
open(my $sorted, '|-', 'sort', '-n') or die $!;
print {$sorted} "$_\n" for 10, 9, 1;
close $sorted;

my $caught = 0;
$SIG{USR1} = sub { $caught++ };
kill 'USR1', $$ for 1 .. 10;
print "caught: $caught\n";
eval {
    local $SIG{ALRM} = sub { die "alarm\n" };
    POSIX::sigaction(POSIX::SIGALRM(), POSIX::SigAction->new($SIG{ALRM}));
    require Time::HiRes;
    Time::HiRes::ualarm(20000);
    select undef, undef, undef, 10;
};
print "eval: $@";

my $total : shared = 0;
my @workers = map {
    my $start = $_;
    threads->create(sub {
        for (1 .. 50) { lock $total; $total += $start; }
        return $start * 2;
    })
} 1 .. 3;
print "joined: ", join(',', map { $_->join } @workers), " total $total\n";

socketpair(my $left, my $right, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die $!;
syswrite $left, "over a socket\n";
sysread $right, my $text, 100;
print $text;

my %seen;
$seen{$_}++ for split //, 'mississippi';
print join(' ', map { "$_=$seen{$_}" } sort keys %seen), "\n";
(my $spaced = '1234567') =~ s/(?<=\d)(?=(\d{3})+$)/,/g;
print "$spaced\n";
print 'nested: ', '((a)(b(c)))x' =~ /^(\((?:[^()]|(?1))*\))/ ? $1 : 'none', "\n";
warn "a warning\n";
die "the end\n";
