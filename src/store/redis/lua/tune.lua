-- tune: ARGV 3 what (host, cookies, values). host: 4 its name, 5 is local 1 and length of its site 1, 6 tuning. cookies: 4 site, 5 jar. values: 4 changes.
touch()
if ARGV[3] == 'host' then
  local isLocal, site = read('<BB', ARGV[5])
  local h = hostOf(ARGV[4], isLocal, site)
  if h.isLocal == 0 then h.isLocal = isLocal end
  tune(h, ARGV[6])
elseif ARGV[3] == 'cookies' then
  keepCookies(ARGV[4], ARGV[5])
elseif ARGV[3] == 'values' then
  changeValues(ARGV[4])
else
  return redis.error_reply('BADARGS tune')
end
flush()
return 1
