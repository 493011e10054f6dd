-- A small server of many trades. The line before these says which special requests this configuration
-- answers (`use`), which and how many requests come (`seed`, `requests`), and that one in `rare` is of the
-- trades that are seldom asked for.
local sum, memory = 0, {}
local function keep(value) sum = (sum * 31 + (tonumber(value) or #tostring(value))) % 1000003 end
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local Account = {} Account.__index = Account
function Account.new(n) return setmetatable({ n = n }, Account) end
function Account:pay(n) if n > self.n then error("no funds") end self.n = self.n - n return self.n end
Account.__add = function(a, b) return Account.new(a.n + b.n) end
Account.__lt = function(a, b) return a.n < b.n end
Account.__tostring = function(a) return "account " .. a.n end

local common = {
  function(r) for i = 1, 40 do keep((r + i) % 7 * i // 3) end end,
  function(r) local t = {} for i = 1, 30 do t[i] = (r * i) % 97 end table.sort(t) keep(t[15]) end,
  function(r) local t = {} for i = 1, 30 do t[i] = tostring(r % i) end keep(table.concat(t, ",")) end,
  function(r) keep(fib(r % 8 + 6)) end,
  function(r) local s = ("key%d=value%d; "):format(r % 9, r % 5):rep(6) for k, v in s:gmatch("(%w+)=(%w+)") do keep(k .. v) end end,
  function(r) for i = 1, 30 do local k = "k" .. (r + i) % 50 memory[k] = (memory[k] or 0) + i end keep(memory["k" .. r % 50]) end,
  function(r) keep((("the quick brown fox %d"):format(r % 100)):gsub("%w+", string.upper)) end,
  function(r) local function add(a) return function(b) return a + b end end for i = 1, 20 do keep(add(r % 11)(i)) end end,
}
local special = {
  function(r) local a, b = Account.new(r % 90), Account.new(5) keep(tostring(a + b)) keep(a < b and 1 or 2) end,
  function(r) local ok, why = pcall(Account.pay, Account.new(r % 3), r % 5) keep(ok and why or "refused") end,
  function(r) local co = coroutine.wrap(function() for i = 1, 8 do coroutine.yield(i * r % 13) end end) for _ = 1, 8 do keep(co()) end end,
  function(r) keep(string.format("%5.2f %x %-8s %q %g", r % 1000 / 7, r % 4096, "id", "a\n", r % 77 * 1e10)) end,
  function(r) keep(string.unpack("<i4", string.pack("<i4", r % 100000))) keep(#string.pack(">I2s1z", r % 65536, "abc", "z")) end,
  function(r) keep((r & 0xff) ~ (r >> 3 & 15) | (r << 2 & 63)) keep(~r & 7) end,
  function(r) keep(math.floor(math.sqrt(r % 5000) * 100)) keep(math.floor(math.sin(r % 10) * 100)) keep(math.max(r % 3, r % 4)) end,
  function(r) local t = { r % 5, r % 6, r % 7 } table.insert(t, 2, r % 8) keep(table.remove(t)) keep(select("#", table.unpack(t))) keep(table.concat(table.move(t, 1, 2, 2), ";")) end,
  function(r) for _, code in utf8.codes(utf8.char(r % 500 + 100, 8364)) do keep(code) end end,
  function(r) keep(("a(b(%d)c)d"):format(r % 10):match("%b()")) keep(("  trim me "):match("^%s*(.-)%s*$")) keep(("x=1,y=2"):find(",", 1, true)) end,
  function(r) local s = 0 for x = 0.5, 8, 0.5 do s = s + x ^ 2 % 3 end keep(s // 1 + r % 2) end,
  function(r) goto middle ::top:: keep(1) do return end ::middle:: if r % 2 == 0 then goto top end keep(2) end,
  function(r) local t = setmetatable({}, { __index = function(_, k) return k * 2 end, __len = function() return r % 9 end }) keep(t[r % 50]) keep(#t) end,
  function(r) keep(os.date("!%Y-%m-%d", r % 1000000)) keep(os.time({ year = 2020, month = 1 + r % 12, day = 1 }) % 97) end,
  function(r) local t = { n = 3, r % 4, x = { y = r % 6 } } local n = 0 for _, v in pairs(t) do n = n + (type(v) == "number" and v or v.y) end keep(n) end,
  function(r) keep(tonumber("0x1p4") + tonumber("12", 3 + r % 5)) keep(tostring(1e15 + r % 3)) keep(7 // 2.0 + -7 % 3) end,
}
local seldom = {
  function(r) keep(assert(load("local a = ... for i = 1, 3 do a = a + i end return a"))(r % 10)) end,
  function(r) keep(select(2, load("return " .. (r % 2 == 0 and "= 1" or "1 +")))) end,
  function() collectgarbage("step", 1) end,
  function(r) keep(debug.getinfo(1, "Sl").currentline) keep(#debug.traceback("t" .. r % 2)) end,
  function(r) keep(#string.dump(function(x) return x + 1 end) % 2 + r % 2) end,
  function(r) local co = coroutine.create(function() local g <close> = setmetatable({}, { __close = function() keep(r % 5) end }) coroutine.yield() end) coroutine.resume(co) keep(coroutine.close(co) and 1 or 0) end,
  function(r) keep(select(2, pcall(function() return {} .. r end))) keep(select(2, pcall(string.rep))) end,
  function(r) local weak = setmetatable({}, { __mode = "k" }) weak[{}] = r collectgarbage() keep(next(weak) == nil and 1 or 0) end,
  function(r) keep(xpcall(error, function(e) return e end, r) and 1 or 0) keep(rawlen({ 1, 2 }) + (rawequal(use, use) and 1 or 0)) end,
  function(r) local s = ("%a"):format(1 + r % 4) keep(s) keep(("%i|%c|%o"):format(r % 9, 65, r % 64)) keep(("abc"):byte(1, -1)) keep(("abc"):reverse()) end,
}
local trades = {}
for i, each in ipairs(common) do trades[i] = each end
for _, i in ipairs(use) do trades[#trades + 1] = special[i] end
local served = {}
for i = 1, #seldom do if (i * 7 + #use) % 3 ~= 0 then served[#served + 1] = seldom[i] end end
for i = 1, requests do
  seed = (seed * 1103515245 + 12345) % 2147483648
  local draw = seed // 65536
  if i % rare == 0 then served[draw % #served + 1](draw) else trades[draw % #trades + 1](draw) end
end
print(requests, sum)
