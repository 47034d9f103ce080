// Reads messages of a stream ahead of their consumer, up to a number that may
// wait, one read at a time and in order.
//
// A message is handed over before anything counts it: whoever counts could let
// the next one be read, and that one must not overtake. So the count may be one
// less than what waits, and below zero for a moment.
//
// Thread safety: Give is called by the reader, once for each read, from any
// thread; Took by the consumer, from any thread.
#ifndef REGATTA_TRACKER_READ_AHEAD_H_
#define REGATTA_TRACKER_READ_AHEAD_H_

#include <atomic>
#include <functional>
#include <utility>

namespace regatta {

class ReadAhead {
 public:
  // `most` may wait, at least 1. `read_next` starts the next read.
  ReadAhead(int most, std::function<void()> read_next)
      : most_(most), read_next_(std::move(read_next)) {}

  // A message was read. `post` puts it where the consumer finds it.
  template <typename Post>
  void Give(const Post& post) {
    post();
    if (++waiting_ != most_) read_next_();
  }
  // The consumer is done with one.
  void Took() {
    if (waiting_-- == most_) read_next_();
  }

 private:
  const int most_;
  const std::function<void()> read_next_;
  std::atomic<int> waiting_ = 0;
};

}  // namespace regatta

#endif  // REGATTA_TRACKER_READ_AHEAD_H_
