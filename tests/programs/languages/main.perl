# Exceptions, closures, regular expressions, a child.
use strict;
use warnings;
sub fib { my $n = shift; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
print fib(18), "\n";
eval { die { code => 7 } };
print $@->{code}, "\n";
my %words;
$words{"word" . $_ % 101} = $_ for 1 .. 20000;
print scalar(keys %words), "\n";
(my $text = "hello world") =~ s/(\w+) (\w+)/$2 $1/;
print "$text\n";
$| = 1;
my $child = fork // die;
exit 9 unless $child;
waitpid $child, 0;
print $? >> 8, "\n";
exit 4;
