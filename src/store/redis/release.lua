-- KEYS   leases
-- ARGV   tokens, one for each lease
-- reply  how many were ours
local released = 0
for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[i] then
    released = released + redis.call('DEL', KEYS[i])
  end
end
return released
