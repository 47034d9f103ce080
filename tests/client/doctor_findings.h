#ifndef REGATTA_TESTS_CLIENT_DOCTOR_FINDINGS_H_
#define REGATTA_TESTS_CLIENT_DOCTOR_FINDINGS_H_

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/cli/doctor/doctor.h"

namespace regatta::cli {

// The finding of this check.
inline std::optional<Finding> Get(const std::vector<Finding>& findings,
                                  const std::string& check) {
  for (const Finding& finding : findings) {
    if (finding.check == check) return finding;
  }
  return std::nullopt;
}

// Names are unique, nothing is empty, and what is bad says what to do.
inline void ExpectSound(const std::vector<Finding>& findings) {
  std::set<std::string> names;
  for (const Finding& finding : findings) {
    EXPECT_TRUE(names.insert(finding.check).second) << finding.check;
    EXPECT_FALSE(finding.what.empty()) << finding.check;
    EXPECT_EQ(finding.what.find('\n'), std::string::npos) << finding.what;
    if (finding.level == Level::kFail) {
      EXPECT_FALSE(finding.remedy.empty()) << finding.check;
    }
  }
}

}  // namespace regatta::cli

#endif  // REGATTA_TESTS_CLIENT_DOCTOR_FINDINGS_H_
