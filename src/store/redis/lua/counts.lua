-- counts: the crawl's numbers, and its named counters.
local waiting = call('ZCARD', W) + get('parked')
return {
  { get('queued'), get('delayed'), get('leased'), get('done'), get('dropped'), get('places'), get('counted'), get('rleased'), waiting, get('base') },
  S.ctl, get('over'), call('HGETALL', J .. ':t'), exact(get('oin') - get('oout')), exact(get('oinb') - get('ooutb')), get('sc'),
}
