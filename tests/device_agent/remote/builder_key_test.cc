#include "device_agent/remote/builder_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"

namespace regatta {
namespace {

class BuilderKey : public ::testing::Test {
 protected:
  BuilderKey() {
    folder_ = ::testing::TempDir() + "/key-XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~BuilderKey() override { std::filesystem::remove_all(folder_); }
  std::string Path() const { return folder_ + "/builder.key"; }
  void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
  }
  std::string folder_;
};

TEST_F(BuilderKey, IsMadeOnceAndIsItsOwnersAlone) {
  const auto first = LoadOrMakeBuilderKey(folder_);
  ASSERT_TRUE(first.ok()) << first.status();
  struct stat info;
  ASSERT_EQ(stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto second = LoadOrMakeBuilderKey(folder_);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->public_key(), second->public_key());
  EXPECT_TRUE(
      VerifySignature(first->public_key(), "text", second->Sign("text")));
  // Nothing else is left beside it.
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path(), Path());
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(BuilderKey, ThatOthersMayReadIsNotUsed) {
  ASSERT_TRUE(LoadOrMakeBuilderKey(folder_).ok());
  chmod(Path().c_str(), 0640);
  const auto key = LoadOrMakeBuilderKey(folder_);
  EXPECT_TRUE(absl::IsFailedPrecondition(key.status())) << key.status();
  EXPECT_NE(key.status().message().find(Path()), absl::string_view::npos);
}

TEST_F(BuilderKey, ThatIsNoneIsNotReplaced) {
  for (const std::string text : {"", "abc\n", "zz"}) {
    Write(Path(), text);
    EXPECT_TRUE(absl::IsDataLoss(LoadOrMakeBuilderKey(folder_).status()))
        << text;
  }
}

TEST_F(BuilderKey, TrustIsNamedByKeyOrByFile) {
  const std::string one(64, 'a'), two(64, '1');
  Write(folder_ + "/keys", "# the lab's\n" + two + "  # shelf 3\n\n" + one);
  const auto keys = ParseTrustedBuilders({one, folder_ + "/keys"});
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(*keys, (std::vector<std::string>{absl::HexStringToBytes(two),
                                             absl::HexStringToBytes(one)}));
  EXPECT_EQ(ParseTrustedBuilders({})->size(), 0u);
}

TEST_F(BuilderKey, WhatNamesNoKeySaysWhere) {
  Write(folder_ + "/bad", std::string(64, 'a') + "\nshelf 3\n");
  Write(folder_ + "/empty", "# none yet\n");
  const struct {
    std::string text, says;
  } cases[] = {
      {"", "\"\" is neither a key"},
      {std::string(63, 'a'), "neither a key"},
      {std::string(64, 'g'), "neither a key"},
      {folder_ + "/bad", "line 2: \"shelf 3\""},
      {folder_ + "/empty", "names no key"},
  };
  for (const auto& test : cases) {
    const auto keys = ParseTrustedBuilders({test.text});
    ASSERT_TRUE(absl::IsInvalidArgument(keys.status())) << test.text;
    EXPECT_NE(keys.status().message().find(test.says), absl::string_view::npos)
        << keys.status();
  }
}

// RFC 8032, section 7.1, test 2.
TEST(Ed25519, AgreesWithItsStandard) {
  const auto key = SigningKey::FromPrivate(absl::HexStringToBytes(
      "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(absl::BytesToHexString(key->public_key()),
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const std::string signature = key->Sign("\x72");
  EXPECT_EQ(absl::BytesToHexString(signature),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(VerifySignature(key->public_key(), "\x72", signature));
  EXPECT_FALSE(VerifySignature(key->public_key(), "\x73", signature));
  EXPECT_FALSE(VerifySignature("", "\x72", signature));
  EXPECT_FALSE(VerifySignature(key->public_key(), "\x72", ""));
  EXPECT_FALSE(SigningKey::FromPrivate("short").ok());
}

}  // namespace
}  // namespace regatta
