-- Takes away what readers find; who has begun to read may go on for a while.
--
-- KEYS[1] pointer, KEYS[2] the copy that is being made
-- ARGV    1 dataset, 2 claim, 3 milliseconds for which an older copy stays, 4 those for which older claims are refused
-- reply   1 done, or there is another dataset of the name; 0 a newer claim was met
local dataset = tonumber(ARGV[1])
local made = redis.call('HMGET', KEYS[2], 'dataset', 'claim', 'copy')
local known = tonumber(made[1] or 0)
if known > dataset then return 1 end
if known == dataset and tonumber(made[2] or 0) > tonumber(ARGV[2]) then return 0 end
local before = redis.call('HGET', KEYS[1], 'copy')
if before then
  redis.call('PEXPIRE', before .. ':items', ARGV[3])
  redis.call('PEXPIRE', before .. ':keys', ARGV[3])
end
if made[3] then redis.call('UNLINK', made[3] .. ':items', made[3] .. ':keys') end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[2], 'dataset', ARGV[1], 'claim', ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
