-- add: ARGV 3 groups, then the groups. Answers added, known, lowered, and whether anything is taken at all (a worker then remembers them as known).
local groups = tonumber(ARGV[3])
if not groups or checkGroups(4, groups) ~= #ARGV + 1 then return redis.error_reply('BADARGS add') end
touch()
addGroups(4, groups, false, nil)
for _, packets in ipairs(owed) do passPackets(packets) end
flush()
return { added, known, lowered, get('over') == 1 and 0 or 1 }
