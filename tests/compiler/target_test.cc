#include "compiler/target/target.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(TargetTest, TextComesBackAsItWasGiven) {
  for (const std::string text :
       {"cpu", "cpu,triple=x86_64-linux-gnu,mcpu=znver4",
        "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
        "vector_registers=32",
        "cpu,triple=aarch64-linux-gnu,mcpu=cortex-a72,features=+neon-sve",
        "cpu,mcpu=neoverse-v1,products=bf16x2x2x4+i8x2x2x8+i8x4",
        "opencl,features=+cl_khr_fp16,vector_bits=128,max_group=256,"
        "local_bytes=32768,subgroup=16,image_width=16384,image_height=8192",
        "cuda,mcpu=sm_80,features=+copy_async,vector_bits=128,max_group=1024,"
        "local_bytes=166912,subgroup=32,max_registers=255,"
        "products=bf16x16x8x16+f16x16x8x16+i8x16x8x32"}) {
    const auto target = ParseTarget(text);
    ASSERT_STATUS_OK(target);
    EXPECT_EQ(target->ToString(), text);
    EXPECT_EQ(*ParseTarget(target->ToString()), *target);
  }
}

TEST(TargetTest, FieldsMayComeInAnyOrderAndFeaturesAreSorted) {
  const auto a = ParseTarget("cpu,mcpu=x,features=+b+a,triple=t");
  const auto b = ParseTarget("cpu, triple=t, features=+a+b, mcpu=x");
  ASSERT_STATUS_OK(a);
  ASSERT_STATUS_OK(b);
  EXPECT_EQ(*a, *b);
  EXPECT_EQ(a->features, (std::vector<std::string>{"+a", "+b"}));
}

TEST(TargetTest, FeaturesAreAskedForByName) {
  const auto target = ParseTarget("opencl,features=+cl_khr_fp16-images");
  ASSERT_STATUS_OK(target);
  EXPECT_TRUE(target->Has("cl_khr_fp16"));
  EXPECT_FALSE(target->Has("images"));
  EXPECT_FALSE(target->Has("cl_khr_fp64"));
}

TEST(TargetTest, FormsOfProductsAreRead) {
  EXPECT_EQ(ParseProductForm("i8x4"),
            (ProductForm{.type = DType::kI8, .depth = 4}));
  EXPECT_EQ(ParseProductForm("ui8x4"),
            (ProductForm{.type = DType::kI8, .unsigned_a = true, .depth = 4}));
  EXPECT_EQ(
      ParseProductForm("bf16x2x3x4"),
      (ProductForm{.type = DType::kBF16, .rows = 2, .cols = 3, .depth = 4}));
  for (const char* text : {"", "i8", "i8x", "x4", "i8x0", "i8x-4", "i8x2x4",
                           "i9x4", "ux4", "i8x4x4x4x4", "i8x99999"}) {
    EXPECT_EQ(ParseProductForm(text), std::nullopt) << text;
  }
}

TEST(TargetTest, LanesAreAtLeastOne) {
  Target target{.vector_bits = 512};
  EXPECT_EQ(target.Lanes(4), 16);
  EXPECT_EQ(target.Lanes(1), 64);
  target.vector_bits = 0;
  EXPECT_EQ(target.Lanes(4), 1);
}

TEST(TargetTest, WrongTextIsRefusedByField) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "kind"},
      {"cpu,mcpu=", "mcpu"},
      {"cpu,mcpu=a b", "mcpu"},
      {"cpu,vector_bits=-8", "vector_bits"},
      {"cpu,vector_bits=12", "multiple of 8"},
      {"cpu,vector_bits=99999999999999", "vector_bits"},
      {"cpu,vector_registers=x", "vector_registers"},
      {"opencl,max_group=-1", "max_group"},
      {"opencl,local_bytes=0",
       "local_bytes is '0'; it must be a whole number "
       "from 1"},
      {"cuda,max_group=0", "leave it out for the usual"},
      {"opencl,local_bytes=32k", "local_bytes"},
      {"cuda,subgroup=4096", "subgroup"},
      {"cpu,speed=9", "unknown field 'speed'"},
      {"cpu,mcpu=a,mcpu=b", "given twice"},
      {"cpu,features=avx", "features"},
      {"cpu,products=i8", "products"},
      {"cpu,products=i8x4,products=i8x4", "given twice"},
      {"cpu,,", "unknown field ''"},
      {"9cpu", "kind"},
      {std::string(100000, 'a'), "too long"}};
  for (const auto& [text, message] : cases) {
    const auto target = ParseTarget(text);
    ASSERT_FALSE(target.ok()) << text;
    EXPECT_EQ(target.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(StatusText(target), HasSubstr(message));
  }
}

TEST(TargetTest, DeviceClassNamesProcessorAndCores) {
  EXPECT_EQ(CpuDeviceClass({.mcpu = "znver4"}, 2), "znver4-2c");
  EXPECT_EQ(CpuDeviceClass({.triple = "aarch64-linux-gnu"}, 4), "aarch64-4c");
}

}  // namespace
}  // namespace regatta
