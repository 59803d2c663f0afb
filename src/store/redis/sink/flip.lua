-- Has readers find a copy that is whole, at once, and lets what they found before go after a while.
--
-- KEYS[1] pointer, KEYS[2] the copy that is being made, KEYS[3] its items, KEYS[4] its keys, KEYS[5] older copies
-- ARGV    1 dataset, 2 claim, 3 copy, 4 publication, 5 generation, 6 results, 7 milliseconds for which an older copy stays,
--         8 how many of those, 9 '1' with keys, 10 the summary, if there is one
-- reply   'done', 'fenced', 'ahead' or 'short'
local made = redis.call('HMGET', KEYS[2], 'dataset', 'claim', 'copy')
if made[1] ~= ARGV[1] or made[2] ~= ARGV[2] or made[3] ~= ARGV[3] then return 'fenced' end
local now = redis.call('HMGET', KEYS[1], 'dataset', 'publication', 'copy')
local shown, dataset = tonumber(now[1] or 0), tonumber(ARGV[1])
if shown > dataset then return 'fenced' end
if shown == dataset and tonumber(now[2]) > tonumber(ARGV[4]) then return 'ahead' end
if redis.call('HLEN', KEYS[3]) ~= tonumber(ARGV[6]) then
  redis.call('UNLINK', KEYS[3], KEYS[4])
  redis.call('HDEL', KEYS[2], 'generation', 'copy', 'at', 'count')
  return 'short'
end
local before = now[3]
if before then
  redis.call('PEXPIRE', before .. ':items', ARGV[7])
  redis.call('PEXPIRE', before .. ':keys', ARGV[7])
  redis.call('LPUSH', KEYS[5], before)
  while redis.call('LLEN', KEYS[5]) > tonumber(ARGV[8]) do
    local oldest = redis.call('RPOP', KEYS[5])
    redis.call('UNLINK', oldest .. ':items', oldest .. ':keys')
  end
  redis.call('PEXPIRE', KEYS[5], ARGV[7])
end
redis.call('PERSIST', KEYS[3])
redis.call('PERSIST', KEYS[4])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'dataset', ARGV[1], 'publication', ARGV[4], 'generation', ARGV[5], 'results', ARGV[6],
  'copy', ARGV[3], 'items', KEYS[3])
if ARGV[9] == '1' then redis.call('HSET', KEYS[1], 'keys', KEYS[4]) end
if ARGV[10] then redis.call('HSET', KEYS[1], 'summary', ARGV[10]) end
redis.call('HDEL', KEYS[2], 'generation', 'copy', 'at', 'count')
return 'done'
