# The job that Sidekiq runs; it is read by the process that enqueues and by those that work.
require "sidekiq"

class Noop
  include Sidekiq::Worker
  def perform(_index); end
end
