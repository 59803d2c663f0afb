-- Begins to copy a generation, or goes on with what another claim began.
--
-- KEYS[1] pointer, KEYS[2] the copy that is being made
-- ARGV    1 dataset, 2 claim, 3 publication, 4 generation, 5 the keys of a new copy begin with this
-- reply   {'copy', what its keys begin with, the index from which to go on}, {'there'}, {'fenced'} or {'ahead', publication}
local dataset, claim, publication = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local made = redis.call('HMGET', KEYS[2], 'dataset', 'claim', 'generation', 'copy', 'at', 'count')
local known = tonumber(made[1] or 0)
if known > dataset or (known == dataset and tonumber(made[2] or 0) > claim) then return { 'fenced' } end
local now = redis.call('HMGET', KEYS[1], 'dataset', 'publication', 'items', 'results')
local shown = tonumber(now[1] or 0)
local newest = tonumber(now[2] or 0)
if shown > dataset then return { 'fenced' } end
if shown == dataset and newest > publication then return { 'ahead', now[2] } end
redis.call('HSET', KEYS[2], 'dataset', ARGV[1], 'claim', ARGV[2])
local is_whole = now[3] and redis.call('HLEN', now[3]) == tonumber(now[4])
if shown == dataset and newest == publication and is_whole then return { 'there' } end
local copy = made[4]
if copy and known == dataset and made[3] == ARGV[4]
  and redis.call('HLEN', copy .. ':items') == tonumber(made[6]) then
  return { 'copy', copy, made[5] }
end
if copy then redis.call('UNLINK', copy .. ':items', copy .. ':keys') end
redis.call('HSET', KEYS[2], 'generation', ARGV[4], 'copy', ARGV[5], 'at', '0', 'count', '0')
return { 'copy', ARGV[5], '0' }
