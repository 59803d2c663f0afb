-- Appends some results of a generation to its copy: those of the indexes from one to before another.
--
-- KEYS[1] the copy that is being made, KEYS[2] its items, KEYS[3] its keys
-- ARGV    1 dataset, 2 claim, 3 copy, 4 from, 5 to, 6 milliseconds for which an unfinished copy stays, 7 bytes of indexes
--         that one key may have, 8 how many items; index and output of each; key and index of each that has one
-- reply   1 done, now or before; 0 the copy is another's
local made = redis.call('HMGET', KEYS[1], 'dataset', 'claim', 'copy', 'at')
if made[1] ~= ARGV[1] or made[2] ~= ARGV[2] or made[3] ~= ARGV[3] then return 0 end
if tonumber(made[4]) >= tonumber(ARGV[5]) then return 1 end
if made[4] ~= ARGV[4] then return 0 end
local first, added = 9, 0
local last = first + 2 * tonumber(ARGV[8]) - 1
for i = first, last, 200 do
  added = added + redis.call('HSET', KEYS[2], unpack(ARGV, i, math.min(i + 199, last)))
end
for i = last + 1, #ARGV, 2 do
  local before = redis.call('HGET', KEYS[3], ARGV[i])
  if not before then
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1])
  elseif string.sub(before, -1) ~= ',' then
    local is_full = #before + #ARGV[i + 1] >= tonumber(ARGV[7])
    redis.call('HSET', KEYS[3], ARGV[i], before .. ',' .. (is_full and '' or ARGV[i + 1]))
  end
end
redis.call('PEXPIRE', KEYS[2], ARGV[6])
redis.call('PEXPIRE', KEYS[3], ARGV[6])
redis.call('HSET', KEYS[1], 'at', ARGV[5])
redis.call('HINCRBY', KEYS[1], 'count', added)
return 1
