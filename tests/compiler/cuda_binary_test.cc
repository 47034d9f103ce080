#include "compiler/module/cuda_binary.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

CudaBinary Sample() {
  return {.arch = "sm_80",
          .cubin = std::string("\x7f"
                               "ELF\0\1",
                               6),
          .ptx = ".version 9.0\n"};
}

TEST(CudaBinaryTest, BytesComeBackAsAnEqualValue) {
  for (const CudaBinary& binary : {Sample(), CudaBinary{}}) {
    const auto again = ParseCudaBinary(SerializeCudaBinary(binary));
    ASSERT_STATUS_OK(again);
    EXPECT_EQ(*again, binary);
  }
}

TEST(CudaBinaryTest, EveryTruncationAndWhateverFollowsIsRefused) {
  const std::string bytes = SerializeCudaBinary(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ParseCudaBinary(bytes.substr(0, size)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
  EXPECT_THAT(StatusText(ParseCudaBinary(bytes + "x")),
              HasSubstr("more bytes follow"));
}

TEST(CudaBinaryTest, WrongHeadersAreNamed) {
  EXPECT_THAT(StatusText(ParseCudaBinary("\x7f"
                                         "ELF")),
              HasSubstr("no CUDA binary"));
  std::string bytes = SerializeCudaBinary(Sample());
  bytes[4] = 9;
  EXPECT_THAT(StatusText(ParseCudaBinary(bytes)), HasSubstr("version 9"));
  bytes[4] = 1;
  // Sizes whose sum would wrap around.
  for (int i = 8; i < 32; ++i) bytes[i] = '\xff';
  EXPECT_THAT(StatusText(ParseCudaBinary(bytes)), HasSubstr("cut off"));
}

}  // namespace
}  // namespace regatta
