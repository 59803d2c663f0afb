-- Whether readers find a publication, whole.
--
-- KEYS[1] pointer
-- ARGV    1 dataset, 2 publication
-- reply   1 or 0
local now = redis.call('HMGET', KEYS[1], 'dataset', 'publication', 'items', 'results')
if now[1] ~= ARGV[1] or now[2] ~= ARGV[2] or not now[3] then return 0 end
return redis.call('HLEN', now[3]) == tonumber(now[4]) and 1 or 0
