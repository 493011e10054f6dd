-- What must go wrong, and how it is said.
math.randomseed(tonumber(arg[1]))
local random = math.random

local ways = {
  function() print(pcall(table.concat, { 1, random(9), {} }, ",")) end,
  function() print(pcall(table.concat, { 1, random(9), "x" }, ",", 1, random(3, 4))) end,
  function() print(select(2, pcall(error, { code = random(9) })).code) end,
  function() print(pcall(error, "message " .. random(9), 0)) end,
  function() print(select(2, pcall(function() return nil + random(9) end))) end,
  function() print(select(2, pcall(function() local t = {} return t.a.b end))) end,
  function() print(xpcall(function() error("deep " .. random(3)) end, function(m) return "handled: " .. m end)) end,
  function() print(load("return " .. random(9) .. " +")) end,
  function() print(load("x = = " .. random(9))) end,
  function() print(pcall(string.rep)) end,
  function() print(pcall(setmetatable, random(9), {})) end,
  function() print(select("#", pcall(string.gsub, "a", "(", "b")), pcall(string.find, "a", "[a", random(2))) end,
  function() print(pcall(function() local a <const> = random(9) return a .. {} end)) end,
  function() print(assert(load("return ...", "chunk"))(random(9))) end,
  function() print(pcall(table.concat, { {}, "x" }, "-", 1, random(2))) end,
}
for _ = 1, 4 do ways[random(#ways)]() end
