-- Touches every part of the interpreter and its libraries with as few instructions as can be.
local out = {}
local function say(...) out[#out + 1] = table.concat({...}, " ") end

-- Arithmetic of both kinds, with coercions and all bitwise operators.
local a, b = 7, 2.5
say(a + b, a - b, a * b, a / b, a // 2, a % 3, a ^ 2, -a, -b, "10" + 5, 3 | 8, 7 & 5, 6 ~ 3, ~0, 1 << 4, 256 >> 3)
say(7 // 2.0, -7 // 2, -7 % 3, 7.5 % -2, 1e15, 2^53, 0x7fffffffffffffff + 1, math.maxinteger // -1)
say(tostring(1 < 2), tostring("a" < "b"), tostring(1 <= 1.5), tostring(1 == 1.0), tostring("1" == 1), tostring(not nil))

-- Loops, goto, closures, varargs.
for i = 10, 1, -3 do if i == 4 then goto skip end say("down", i) ::skip:: end
for x = 0.0, 1.0, 0.5 do say("float", x) end
local n = 0
repeat n = n + 1 local done = n > 3 until done
while true do n = n - 1 if n == 0 then break end end
local function sum(...) local s = 0 for _, v in ipairs({...}) do s = s + v end return s, select("#", ...) end
say(sum(1, 2, 3))
local function counter() local c = 0 return function() c = c + 1 return c end end
local c1, c2 = counter(), counter()
say(c1(), c1(), c2())
local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
say(fib(9))
local function tail(k, acc) if k == 0 then return acc end return tail(k - 1, acc + k) end
say(tail(20, 0))

-- Strings: formats, patterns, packing.
say(string.format("%5d|%-5s|%05.2f|%x|%q|%g|%c|%i|%a", 42, "ab", 3.14159, 255, "q\n\0", 1e100, 65, 3, 1.0))
say(("hello world"):gsub("o", "0"), ("abc"):gsub("%w", {a = "1", b = false}), ("abc"):gsub("(b)", function(x) return x:upper() end))
say(("key = value"):match("^(%w+)%s*=%s*(%w+)$"), ("f(a(b)c)d"):match("%b()"), ("THE (quick) fox"):find("%((%a+)%)"))
for k, v in ("a=1, b=2"):gmatch("(%w+)=(%w+)") do say(k, v) end
say(("x"):rep(5, "-"), ("abc"):reverse(), ("abc"):byte(1, -1), ("ABC"):lower(), #"long", ("abc"):sub(-2), ("%f[%w]%w+"):len())
say(string.pack("<i4z", 100, "hi"):byte(1, -1))
say(string.unpack("<i4z", string.pack("<i4z", 100, "hi")))
say(utf8.char(228, 8364), utf8.len("äö"), #utf8.char(0x10FFFF))
for _, code in utf8.codes("aé") do say(code) end

-- Tables: array and hash parts, sorting, moving, removing, iteration with deletion.
local t = {5, 2, 8, 1, 9, 3, x = 1, ["y z"] = 2, [1.5] = 3, [true] = 4}
table.sort(t) say(table.concat(t, ","))
table.sort(t, function(p, q) return p > q end) say(table.unpack(t))
table.insert(t, 1, 0) table.insert(t, 7) table.remove(t, 2) say(#t, table.concat(table.move(t, 1, 3, 2), ";"))
for k in pairs(t) do t[k] = nil end
say(next(t) == nil and "empty" or "left", rawlen({1, 2}), rawequal(t, t) and "same" or "other")
for i = 1, 40 do t["k" .. i] = i end
local seen = 0 for _ in pairs(t) do seen = seen + 1 end say(seen)

-- Metatables: every event once.
local V = {}
V.__index = function(_, k) return k .. "?" end
V.__newindex = function(o, k, v) rawset(o, k, v) end
V.__add = function() return "add" end V.__sub = function() return "sub" end V.__mul = function() return "mul" end
V.__div = function() return "div" end V.__mod = function() return "mod" end V.__pow = function() return "pow" end
V.__unm = function() return "unm" end V.__idiv = function() return "idiv" end V.__band = function() return "band" end
V.__bor = function() return "bor" end V.__bxor = function() return "bxor" end V.__shl = function() return "shl" end
V.__shr = function() return "shr" end V.__bnot = function() return "bnot" end V.__concat = function() return "cat" end
V.__len = function() return 99 end V.__eq = function() return true end V.__lt = function() return true end
V.__le = function() return false end V.__call = function(_, x) return x end V.__tostring = function() return "V!" end
V.__close = function() say("closed") end V.__name = "Vector"
local v, w = setmetatable({}, V), setmetatable({}, V)
say(v + 1, v - 1, v * 1, v / 1, v % 1, v ^ 1, -v, v // 1, v & 1, v | 1, v ~ 1, v << 1, v >> 1, ~v, v .. "x", #v)
say(tostring(v == w), tostring(v < w), tostring(v <= w), v(5), tostring(v), v.missing)
v.field = 3 say(v.field)
do local guard <close> = v local const <const> = 1 say(const) end

-- Errors: through Lua and C frames, with values, handlers and to-be-closed variables.
say(select(2, pcall(error, "plain", 0)), select(2, pcall(function() local x = nil return x.y end)))
say(tostring(pcall(function() error({code = 7}) end)), select(2, xpcall(function() return 1 + {} end, function(m) return "handled " .. #m end)))
say(tostring(pcall(string.rep)), tostring(pcall(function() return #nil end)), tostring(pcall(function() return {} < {} end)))
say(tostring(pcall(function() local g <close> = v error("in scope") end)))
say(select(2, pcall(function() local function deep(k) return k == 0 and error("deep") or 1 + deep(k - 1) end return deep(9) end)))
say(tostring(select(2, load("x = = 1"))), tostring(select(2, load("goto nowhere"))), tostring(select(2, load("return '\\q'"))))
say(load("return 1 + ...", "chunk", "t", {})(41), assert(load(string.dump(function() return 6 end)))())

-- Coroutines: yield across pcall, iterators, wrap, errors inside, closing.
local co = coroutine.create(function(x) local y = coroutine.yield(x + 1) pcall(function() coroutine.yield(y * 2) end) error("dies") end)
say(select(2, coroutine.resume(co, 1)), select(2, coroutine.resume(co, 10)), select(2, coroutine.resume(co)), coroutine.status(co))
local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end)
say(gen(), gen(), gen(), tostring(coroutine.isyieldable()), tostring(select(2, coroutine.running())))
local sleeping = coroutine.create(function() local g <close> = v coroutine.yield() end)
coroutine.resume(sleeping) say(tostring(coroutine.close(sleeping)))
table.sort({3, 1, 2}, function(p, q) return p < q end)

-- Collection: weak tables, finalisers, both modes.
local weak = setmetatable({}, {__mode = "k"})
weak[{}] = 1 setmetatable({}, {__gc = function() say("finalised") end})
collectgarbage() collectgarbage("generational") for i = 1, 20 do local _ = {i} end collectgarbage("step")
collectgarbage("incremental") collectgarbage("step", 1) say(next(weak) == nil and "collected" or "kept", math.type(collectgarbage("count")))

-- The other libraries.
say(math.floor(2.7), math.ceil(2.1), math.max(1, 5, 3), math.min(4, 2), math.abs(-3), math.fmod(7, 3), math.tointeger(3.0), math.ult(1, -1) and 1 or 0)
say(string.format("%.3f", math.sin(1) + math.sqrt(2) + math.exp(0) + math.log(8, 2)), tonumber("ff", 16), tonumber("0x1p4"), tonumber("z") == nil and "none" or "")
math.randomseed(42) say(math.random(1, 100) <= 100 and "in range" or "", type(os.time()), os.date("!%Y-%m-%d", 0), type(os.getenv("PATH")))
local info = debug.getinfo(1, "Slnt") say(info.short_src ~= nil and "source" or "", info.what, type(debug.traceback("t", 1)))
debug.sethook(function() end, "cr", 7) tail(3, 0) debug.sethook()
say(select(2, pcall(io.open, "/nonexistent/file")) == nil and "no file" or "")
io.write(table.concat(out, "\n"), "\n")
