// A folder that is filled again while one authority takes over from another.
#include "client/cli/issue_folder.h"

#include <gtest/gtest.h>

#include <string>

#include "base/certs/revocation_list.h"
#include "base/certs/tls_folder.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

TEST(IssueFolderTest, KeepsOtherAuthoritiesOfTheLabAndTheirLists) {
  TestLab before, after, elsewhere("elsewhere");
  const absl::Time now = RealClock().Wall();
  const Identity ann{.lab = "lab",
                     .role = Role::kSubmitter,
                     .name = "ann",
                     .device_class = ""};
  const std::string dir = before.dir() + "/ann.tls";
  const auto issue = [&](TestLab& lab) {
    const absl::Status done = cli::IssueFolder(&lab.authority(), dir, ann, now,
                                               kCertificateLife, "test");
    EXPECT_TRUE(done.ok()) << done.message();
  };
  const auto bad =
      ReadTlsFolder(before.Folder(Role::kAgent, "bad"), now)->certificate;
  ASSERT_TRUE(before.authority().Revoke("agent/bad", "", now, "t").ok());
  issue(before);
  WriteFile(dir + "/ca.pem", ReadFile(dir + "/ca.pem") +
                                 elsewhere.authority().certificate().Pem());
  issue(after);
  const auto both = ReadTlsFolder(dir, now);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->trust.authorities().size(), 2u);
  EXPECT_EQ(both->trust.revoked().size(), 2u);
  EXPECT_FALSE(both->trust.Check(bad, now).ok());
  const auto good =
      ReadTlsFolder(before.Folder(Role::kAgent, "good"), now)->certificate;
  EXPECT_TRUE(both->trust.Check(good, now).ok());
  // Again, and nothing is there twice.
  issue(after);
  EXPECT_EQ(ReadTlsFolder(dir, now)->trust.authorities().size(), 2u);
  EXPECT_EQ(RevocationList::AllFromPem(ReadFile(dir + "/crl.pem"))->size(), 2u);
}

}  // namespace
}  // namespace regatta::testing
