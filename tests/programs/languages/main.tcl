# Exceptions, coroutines, regular expressions.
proc fib {n} { expr {$n < 2 ? $n : [fib [expr {$n - 1}]] + [fib [expr {$n - 2}]]} }
puts [fib 18]
puts [catch {error words} what]
puts $what
proc numbers {} { foreach n {1 2 3} { yield $n }; return done }
puts [coroutine next numbers][next][next][next]
puts [regsub {(\w+) (\w+)} "hello world" {\2 \1}]
for {set i 0} {$i < 20000} {incr i} { set words(word[expr {$i % 101}]) $i }
puts [array size words]
exit 3
