-- Numerals, remainders, loops and conversions.
math.randomseed(tonumber(arg[1]))
local random = math.random

local ways = {
  function() print(tonumber("0x" .. string.format("%x", random(65536)))) end,
  function() print(tonumber("0X" .. string.format("%X", random(65536)))) end,
  function() print(tonumber(random(1000) .. "e" .. random(5)), tonumber("  " .. random(99) .. "  "), tonumber("1x")) end,
  function() print(random(1000) % random(7), random(1000) // random(7)) end,
  function() print(-random(1000) % random(2, 7), -random(1000) // random(2, 7)) end,
  function() print(random(1000) % -random(2, 7), 5.5 % random(2, 7), -5.5 % 3) end,
  function() local s = 0 for i = random(10), -random(10), -random(3) do s = s * 3 + i end print(s) end,
  function() local s = 0 for i = 1, random(20), random(4) do s = s + i end print(s) end,
  function() local s = 0.0 for i = 0, 1, 1 / 2 ^ random(4) do s = s + i end print(s) end,
  function() print(math.maxinteger + random(5), math.mininteger - random(5), 1 << random(70), -1 >> random(63)) end,
  function() print(math.tointeger(random(9) / 1), math.type(random(9) / 2), 7 // 0.0, -7 // 0.0, math.ult(1, -random(9))) end,
  function() print(string.format("%.14g %.3f %g", random() * 1e6, random(), 1e300 * random(9) * 1e10)) end,
  function() print(tonumber(tostring(random(36 ^ 3)), 36), tonumber("zz", 36), tonumber("8", 8)) end,
}
for _ = 1, 5 do ways[random(#ways)]() end
