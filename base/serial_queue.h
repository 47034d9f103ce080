// A thread that does one thing after another, for work that must not hold up
// the threads that ask for it. What waits is bounded.
//
// Thread-safe.
#ifndef REGATTA_BASE_SERIAL_QUEUE_H_
#define REGATTA_BASE_SERIAL_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace regatta {

class SerialQueue {
 public:
  explicit SerialQueue(size_t max_waiting);
  ~SerialQueue();  // after all that was posted is done

  // False, and nothing is done: too much waits already.
  bool Post(std::function<void()> work);

 private:
  void Run();

  const size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace regatta

#endif  // REGATTA_BASE_SERIAL_QUEUE_H_
