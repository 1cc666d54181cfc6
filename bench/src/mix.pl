# SPDX-License-Identifier: MIT
#
# The perl workload: regular expressions, hashes, sorting and string building over a text file.
#
# usage: mix.pl FILE ROUNDS
use strict;
use warnings;

my ($path, $rounds) = @ARGV;
open(my $file, '<', $path) or die "$path: $!";
my @lines = <$file>;
close($file);

my $total = 0;
for my $round (1 .. $rounds) {
    my (%count, %initial);
    for my $line (@lines) {
        for my $word (split ' ', $line) {
            $count{$word}++;
            push @{ $initial{ substr $word, 0, 1 } }, length $word;
        }
        $total++ if $line =~ /\b(\w+)ing\b.*\b\1/;
        (my $copy = $line) =~ s/([aeiou])/uc $1/ge;
        $total += ($copy =~ tr/AEIOU//);
    }
    my @ranked = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    $total = ($total * 31 + length(join ',', @ranked[0 .. 99]) + $round) % 1000000007;
    $total += $_ for map { scalar @{ $initial{$_} } } sort keys %initial;
}
print "$total\n";
