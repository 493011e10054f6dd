-- Coroutines, errors, code that is compiled while it runs.
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
print(fib(22))
local sum = 0
for i = 1, 1000000 do sum = sum + i % 7 end
print(sum)
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
print(co(), co(), co())
print(pcall(function() local x = nil; return x.y end) == false)
local function deep(n) return 1 + deep(n + 1) end
print(pcall(deep, 0) == false)
local words = {}
for i = 1, 20000 do words["word" .. i % 101] = i end
local n = 0
for _ in pairs(words) do n = n + 1 end
print(n)
os.exit(3)
