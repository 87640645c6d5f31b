-- One line that a program can read. An argument after -- is a JSON body to POST.
function init(args)
  if args[1] then
    wrk.method, wrk.body = "POST", args[1]
    wrk.headers["Content-Type"] = "application/json"
  end
  request_bytes = wrk.format()
end

function request()
  return request_bytes
end

function done(summary, latency, requests)
  local e = summary.errors
  local bad = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("report %d %d %.1f %d\n", summary.requests, summary.duration, latency:percentile(50), bad))
end
