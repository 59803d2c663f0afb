-- KEYS[3 …]  leases
-- ARGV[2 …]  tokens, one for each lease
-- reply      a number for each lease: 0 someone else's, 1 ours, 2 nobody's and closed
for i = 3, #KEYS do
  local token = ARGV[i - 1]
  local holder = redis.call('GET', KEYS[i])
  if holder == token or not (holder or is_closed) then
    redis.call('SET', KEYS[i], token, 'PX', ARGV[1])
    said[i - 2] = HELD
  else
    said[i - 2] = holder and LOST or ABSENT
  end
end
return said
