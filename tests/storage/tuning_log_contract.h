// What every backend of the tuning log must do. A backend joins with one
// INSTANTIATE_TEST_SUITE_P of TuningLogContract and a factory.
#ifndef REGATTA_TESTS_STORAGE_TUNING_LOG_CONTRACT_H_
#define REGATTA_TESTS_STORAGE_TUNING_LOG_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "storage/tuning_log.h"

namespace regatta::testing {

// A place for one log, empty at first and gone with the object.
class LogPlace {
 public:
  virtual ~LogPlace() = default;
  virtual std::string Location() const = 0;
};

struct LogBackend {
  std::string name;
  std::function<std::unique_ptr<LogPlace>()> make_place;

  friend std::ostream& operator<<(std::ostream& out, const LogBackend& b) {
    return out << b.name;
  }
};

class TuningLogContract : public ::testing::TestWithParam<LogBackend> {
 protected:
  TuningLogContract();
  // Closes the log and opens it again.
  void Reopen();

  std::unique_ptr<LogPlace> place_;
  std::unique_ptr<TuningLog> log_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_STORAGE_TUNING_LOG_CONTRACT_H_
