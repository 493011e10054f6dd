-- Patterns, formats and pieces of texts, some of many chosen by the seed.
math.randomseed(tonumber(arg[1]))
local random = math.random

local function word()
  local letters = {}
  for i = 1, random(1, 9) do letters[i] = string.char(96 + random(26)) end
  return table.concat(letters)
end

local ways = {
  function() print(word():rep(random(0, 4), ({ "", ", ", "-", "::" })[random(4)])) end,
  function()
    local text = "f(" .. word() .. "(" .. word() .. (random(3) == 1 and "(x)" or "") .. ")" .. word() .. ")" .. word()
    print(text, text:match("%b()"), text:find("%b()"))
  end,
  function() print((word() .. " " .. word()):gsub("%w+", string.upper)) end,
  function() print(string.format("%-12s|%8.3f|%5d|%x", word(), random() * 100, random(1000), random(65536))) end,
  function() print(string.format("%-20s|", word():rep(random(1, 30), " "))) end,
  function() print(("a,b,,c"):rep(random(3), ";"):gsub(",", "%0%0", random(5))) end,
  function() print(("key = value; other=" .. word()):match("(%w+)%s*=%s*(%w+);?(.*)")) end,
  function() for a, b in (word() .. "=1," .. word() .. "=2"):gmatch("(%w+)=(%w+)") do print(a, b) end end,
  function() local t = word() .. word() print(t:sub(-random(8)), t:sub(2, -2), t:byte(1, 3)) end,
  function() print(#word():reverse(), ("x"):rep(random(100)):len(), (word()):find("[aeiou]")) end,
  function() print(("THE (quick) fox"):find("%f[%a]%a+%f[%A]", random(10))) end,
  function() print(string.format("%q", word() .. "\n\0" .. random(9))) end,
  function() print(pcall(string.rep, "x", -1), pcall(string.format, "%d", word())) end,
}
for _ = 1, 5 do ways[random(#ways)]() end
