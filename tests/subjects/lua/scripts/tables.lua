-- Lists that grow, shrink, are sorted, joined and moved.
math.randomseed(tonumber(arg[1]))
local random = math.random

local function list(most)
  local made = {}
  for i = 1, random(0, most) do made[i] = random(100) end
  return made
end

local ways = {
  function() local t = list(12) table.sort(t) print(table.concat(t, " ")) end,
  function() local t = list(7) table.sort(t, function(a, b) return a > b end) print(table.concat(t, " ")) end,
  function() local t = list(9) table.insert(t, random(#t + 1), "new") print(table.concat(t, " ")) end,
  function() local t = list(9) print(table.remove(t, #t > 0 and random(#t) or 0), table.concat(t, " ")) end,
  function() print(table.unpack(list(6))) end,
  function() local t = list(8) print(table.concat(table.move(t, 1, #t, random(5)), " ", 1, 1)) end,
  function() print(select("#", table.unpack({}, 1, random(20))), table.pack(table.unpack(list(4))).n) end,
  function()
    -- The list's array becomes too large for what is left, and shrinks when something else is added.
    local t, size, every, from = {}, random(30, 70), random(7, 9), random(4, 6)
    for i = 1, size do t[i] = i end
    for i = 4, size do if i % every ~= from then t[i] = nil end end
    for i = 1, random(40) do t["key" .. i] = i end
    local left = {}
    for k, v in pairs(t) do left[#left + 1] = tostring(k) .. "=" .. v end
    table.sort(left)
    print(#left, table.concat(left, " "))
  end,
  function()
    local t = {}
    for i = 1, random(50) do t[random(1000)] = i end
    local sum = 0
    for k, v in pairs(t) do sum = sum + k * v end
    print(sum)
  end,
}
for _ = 1, 4 do ways[random(#ways)]() end
