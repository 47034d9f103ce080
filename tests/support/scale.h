// How much random, soak and fault tests do.
#ifndef REGATTA_TESTS_SUPPORT_SCALE_H_
#define REGATTA_TESTS_SUPPORT_SCALE_H_

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace regatta {

// The setting REGATTA_TEST_SCALE, default 1.
inline double TestScale() {
  const char* text = std::getenv("REGATTA_TEST_SCALE");
  const double scale = text == nullptr ? 1 : std::atof(text);
  return scale > 0 ? scale : 1;
}

// `count` times the scale, at least 1. Prints the scale once.
inline int Scaled(int count) {
  static const double scale = [] {
    std::printf("REGATTA_TEST_SCALE is %g\n", TestScale());
    return TestScale();
  }();
  return std::max(1, static_cast<int>(count * scale));
}

}  // namespace regatta

#endif  // REGATTA_TESTS_SUPPORT_SCALE_H_
