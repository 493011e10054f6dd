\ Recursion, exceptions.
: fib dup 2 < if drop 1 else dup 1- recurse swap 2 - recurse + then ;
: odd? dup 1 and if 42 throw then ;
22 fib . cr
: try 4 ['] odd? catch . drop 7 ['] odd? catch . drop ;
try cr
: sum 0 100000 0 do i + loop ;
sum . cr
3 (bye)
