// A process that may open no more files.
#ifndef REGATTA_TESTS_DEVICE_AGENT_FEW_FILES_H_
#define REGATTA_TESTS_DEVICE_AGENT_FEW_FILES_H_

#include <sys/resource.h>

#include "gtest/gtest.h"

namespace regatta {

// While it lives, this process opens no file; what is open stays so. poll(2)
// takes one descriptor at a time.
class FewFiles {
 public:
  FewFiles() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = 3;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewFiles() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FewFiles(const FewFiles&) = delete;

 private:
  rlimit before_ = {};
};

}  // namespace regatta

#endif  // REGATTA_TESTS_DEVICE_AGENT_FEW_FILES_H_
