-- A small program: reads records, groups and sorts them, and prints a table.
math.randomseed(tonumber(arg[1]))
local random = math.random

local lines = {}
local units = { "kg", "g", "lb" }
for i = 1, random(4, 25) do
  local number = random(4) == 1 and string.format("0X%X", random(255)) or tostring(random(500) - (random(6) == 1 and 600 or 0))
  lines[i] = string.format("%s;%s;%s", ({ "iron", "salt", "wool", "corn" })[random(4)], number, units[random(3)])
end

local groups = {}
for line in table.concat(lines, "\n"):gmatch("[^\n]+") do
  local name, amount, unit = line:match("^(%w+);([^;]+);(%w+)$")
  local group = groups[name] or { name = name, rows = {}, total = 0 }
  groups[name] = group
  amount = tonumber(amount)
  group.rows[#group.rows + 1] = { amount = amount, unit = unit }
  group.total = group.total + amount
end
local order = {}
for _, group in pairs(groups) do order[#order + 1] = group end
table.sort(order, function(a, b) return a.total > b.total or a.total == b.total and a.name < b.name end)
for _, group in ipairs(order) do
  table.sort(group.rows, function(a, b) return a.amount < b.amount end)
  local cells = {}
  for i, row in ipairs(group.rows) do cells[i] = row.amount .. row.unit end
  print(string.format("%-6s %6d %3d", group.name, group.total, group.total % 12), table.concat(cells, " "))
end
print(("-"):rep(#order, "+"))
