-- The head of acquire.lua and renew.lua.
--
-- KEYS[1] generation: the run id of the server that all leases here were made on; never expires
-- KEYS[2] quarantine: while it is there, no lease is given anew
-- ARGV[1] ttl in milliseconds
--
-- A server without the generation lost its data; one with that of another process may have lost some of it (a replica
-- that was promoted, a restart from disk). Owners of lost leases may still trust them, for at most a TTL.
local info = redis.pcall('INFO', 'server')
local server = type(info) == 'string' and string.match(info, 'run_id:(%x+)')
local known = redis.call('GET', KEYS[1])
if not known or (server and known ~= server) then
  redis.call('SET', KEYS[1], server or 'unnamed')
  redis.call('SET', KEYS[2], '1', 'PX', ARGV[1])
end
local is_closed = redis.call('EXISTS', KEYS[2]) == 1
local LOST, HELD, ABSENT = 0, 1, 2
local said = {}
