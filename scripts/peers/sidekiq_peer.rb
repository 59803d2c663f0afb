# Sidekiq over Redis. push_bulk of 1,000; two processes of ten threads, the default. It takes a job off its list before it
# runs it, so one that crashes loses what was in flight. Nothing else was tuned.
require "json"
require_relative "sidekiq_noop"

BATCH = 1000
PROCESSES = 2
THREADS = 10

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def redis(&work) = Sidekiq.redis(&work)
def bytes = redis { |r| r.info("memory")["used_memory"].to_i }

n = Integer(ARGV.fetch(0))
empty = bytes
begun = now
# They wait in a list that no process looks at, so that the start of the processes is not measured.
(0...n).each_slice(BATCH) do |batch|
  Sidekiq::Client.push_bulk("class" => Noop, "queue" => "staged", "args" => batch.map { |index| [index] })
end
enqueue_s = now - begun
stored = bytes - empty

workers = Array.new(PROCESSES) do
  spawn("sidekiq", "-r", "#{__dir__}/sidekiq_noop.rb", "-c", THREADS.to_s, "-q", "default", out: :err)
end
at_exit { workers.each { |pid| Process.kill("KILL", pid) } }
sleep 0.01 until redis { |r| r.scard("processes") } == PROCESSES

begun = now
redis { |r| r.rename("queue:staged", "queue:default") }
# The last twenty at most may still be running then.
sleep 0.005 while redis { |r| r.llen("queue:default") }.positive?
drain_s = now - begun

puts JSON.generate(peer: "sidekiq", version: Sidekiq::VERSION, n:, enqueue_s:, drain_s:, bytes: stored)
