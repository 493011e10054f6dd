<?php
// Exceptions, generators, regular expressions.
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function count_to($n) { for ($i = 0; $i < $n; $i++) yield $i; }
echo fib(20), "\n";
try { intdiv(1, 0); } catch (DivisionByZeroError $error) { echo $error->getMessage(), "\n"; }
echo array_sum(iterator_to_array(count_to(1000))), "\n";
echo preg_replace('/(\w+) (\w+)/', '$2 $1', 'hello world'), "\n";
$words = [];
for ($i = 0; $i < 20000; $i++) $words["word" . $i % 101] = $i;
ksort($words);
echo count($words), json_encode(array_slice($words, 0, 2)), "\n";
exit(4);
