# Exceptions, fibers, threads, a stack that overflows.
def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
def deep(n) = deep(n + 1) + 1
puts fib(20)
fiber = Fiber.new { 3.times { |i| Fiber.yield i }; :done }
puts 4.times.map { fiber.resume }.inspect
begin
  nil.length
rescue NoMethodError => error
  puts error.class
end
begin
  deep(0)
rescue SystemStackError => error
  puts error.class
end
puts 4.times.map { |n| Thread.new { (1..1000 * n).sum } }.map(&:value).inspect
puts (0...20_000).map { |i| "word#{i % 101}" }.uniq.size
puts "hello world".gsub(/(\w+) (\w+)/, '\2 \1')
GC.start
exit 3
