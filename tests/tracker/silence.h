// The tracker's log of thousands of faults is of no use to anyone: while this
// lives, nothing is written to stderr.
#ifndef REGATTA_TESTS_TRACKER_SILENCE_H_
#define REGATTA_TESTS_TRACKER_SILENCE_H_

#include <fcntl.h>
#include <unistd.h>

namespace regatta {

class Silence {
 public:
  Silence() : saved_(dup(2)) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    close(null);
  }
  ~Silence() {
    dup2(saved_, 2);
    close(saved_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int saved_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_TRACKER_SILENCE_H_
