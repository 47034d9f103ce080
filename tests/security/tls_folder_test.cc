// The folder of an identity: what is whole is taken, what is not is ignored.
#include "base/certs/tls_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/certs/issue.h"
#include "base/certs/tls_identity.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

namespace fs = std::filesystem;

TEST(TlsFolderTest, KeysAreTheirOwnersAlone) {
  TestLab lab;
  const std::string dir = lab.Folder(Role::kServer, "s1");
  struct stat file;
  ASSERT_EQ(stat((dir + "/key.pem").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
  ASSERT_EQ(stat(dir.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0700);
  ASSERT_EQ(stat((lab.authority_dir() + "/ca.key").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);

  chmod((dir + "/key.pem").c_str(), 0640);
  const auto read = ReadTlsFolder(dir, RealClock().Wall());
  EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(read.status().message().find("chmod 600"),
            read.status().message().npos);
}

TEST(TlsFolderTest, AFolderThatOthersMayWriteToIsRefused) {
  TempDir dir;
  chmod(dir.path().c_str(), 0770);
  EXPECT_NE(MakeTlsFolder(dir.path()).message().find("chmod go-w"),
            std::string::npos);
  chmod(dir.path().c_str(), 0755);
  EXPECT_TRUE(MakeTlsFolder(dir.path()).ok());
}

TEST(TlsFolderTest, WhatLiesInTheWayOfANewFileIsNotWrittenTo) {
  TempDir dir;
  const std::string elsewhere = dir.path() + "/elsewhere";
  WriteFile(elsewhere, "theirs");
  fs::create_symlink(elsewhere,
                     absl::StrCat(dir.path(), "/ca.pem.", getpid(), ".tmp"));
  ASSERT_TRUE(WriteAuthorities(dir.path(), "ours").ok());
  EXPECT_EQ(ReadFile(elsewhere), "theirs");
  EXPECT_EQ(ReadFile(dir.path() + "/ca.pem"), "ours");
}

TEST(TlsFolderTest, WhatIsMissingIsNamedWithWhatToDo) {
  TempDir empty;
  const auto read = ReadTlsFolder(empty.path(), RealClock().Wall());
  EXPECT_NE(read.status().message().find("ca.pem"),
            read.status().message().npos);
  EXPECT_NE(read.status().message().find("regatta certs issue"),
            read.status().message().npos);
}

TEST(TlsFolderTest, AKeyOfAnotherCertificateIsRefused) {
  TestLab lab;
  const std::string one = lab.Folder(Role::kServer, "s1");
  const std::string two = lab.Folder(Role::kServer, "s1");
  fs::copy_file(two + "/key.pem", one + "/key.pem",
                fs::copy_options::overwrite_existing);
  const auto read = ReadTlsFolder(one, RealClock().Wall());
  EXPECT_NE(read.status().message().find("is not the key"),
            read.status().message().npos)
      << read.status().message();
}

TEST(TlsFolderTest, ACrashBetweenTheRenamesLosesNothing) {
  TestLab lab;
  const std::string dir = lab.Folder(Role::kServer, "s1");
  const std::string next = lab.Folder(Role::kServer, "s1");
  // The state after the certificate's rename, before the key's.
  fs::copy_file(next + "/key.pem", dir + "/key.pem.new");
  chmod((dir + "/key.pem.new").c_str(), 0600);
  fs::copy_file(next + "/cert.pem", dir + "/cert.pem",
                fs::copy_options::overwrite_existing);
  const auto read = ReadTlsFolder(dir, RealClock().Wall());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(read->certificate.BelongsTo(read->key));
}

// A board without a clock of its own boots in 1970.
TEST(TlsIdentityTest, BeforeTheClockIsSetNoCertificateCountsAndThenItDoes) {
  TestLab lab;
  const std::string dir = lab.Folder(Role::kAgent, "b1");
  const FakeClock unset;
  const auto early = TlsIdentity::Open(dir, {Role::kAgent}, unset);
  ASSERT_FALSE(early.ok());
  EXPECT_NE(early.status().message().find("1970-01-01"),
            early.status().message().npos)
      << early.status().message();
  EXPECT_NE(early.status().message().find("is valid from"),
            early.status().message().npos);
  const FakeClock set(RealClock().Wall());
  EXPECT_TRUE(TlsIdentity::Open(dir, {Role::kAgent}, set).ok());
}

TEST(TlsIdentityTest, TakesOnlyAWholeNewPairOfItsOwn) {
  TestLab lab;
  const std::string dir = lab.Folder(Role::kServer, "s1");
  const auto tls = lab.Open(dir);
  const std::string first = tls->material()->certificate.Serial();
  const std::string next = lab.Folder(Role::kServer, "s1");
  const std::string stranger = lab.Folder(Role::kServer, "s2");

  // Half a pair: the key is another's.
  fs::copy_file(next + "/key.pem", dir + "/key.pem",
                fs::copy_options::overwrite_existing);
  EXPECT_FALSE(tls->Reload().ok());
  EXPECT_EQ(tls->material()->certificate.Serial(), first);
  // Said once: nothing changed since.
  EXPECT_TRUE(tls->Reload().ok());

  // Half a file.
  const std::string whole = ReadFile(next + "/cert.pem");
  WriteFile(dir + "/cert.pem", whole.substr(0, whole.size() / 3));
  EXPECT_FALSE(tls->Reload().ok());
  EXPECT_EQ(tls->material()->certificate.Serial(), first);

  WriteFile(dir + "/cert.pem", whole);
  EXPECT_TRUE(tls->Reload().ok());
  const std::string second = tls->material()->certificate.Serial();
  EXPECT_NE(second, first);

  // Another's identity is not taken over by a running process.
  fs::copy_file(stranger + "/key.pem", dir + "/key.pem",
                fs::copy_options::overwrite_existing);
  fs::copy_file(stranger + "/cert.pem", dir + "/cert.pem",
                fs::copy_options::overwrite_existing);
  const absl::Status foreign = tls->Reload();
  EXPECT_NE(foreign.message().find("restart"), foreign.message().npos);
  EXPECT_EQ(tls->material()->certificate.Serial(), second);
}

TEST(TlsIdentityTest, ThePairsPathHoldsOnePairAlways) {
  TestLab lab;
  const std::string dir = lab.Folder(Role::kServer, "s1");
  const auto tls = lab.Open(dir);
  const auto path = tls->PairPath();
  ASSERT_TRUE(path.ok());
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = ReadFile(*path);
    const auto key = PrivateKey::FromPem(bytes);
    const auto certificate = Certificate::FromPem(bytes);
    ASSERT_TRUE(key.ok() && certificate.ok()) << bytes;
    EXPECT_TRUE(certificate->BelongsTo(*key));
    EXPECT_EQ(certificate->Serial(), tls->material()->certificate.Serial());
    const PrivateKey fresh = PrivateKey::Generate();
    const auto issued =
        lab.authority().Issue(tls->self(), PublicKey::Of(fresh),
                              RealClock().Wall(), kCertificateLife, "test");
    ASSERT_TRUE(WritePair(dir, fresh, issued->chain_pem).ok());
    ASSERT_TRUE(tls->Reload().ok());
    EXPECT_EQ(*tls->PairPath(), *path);
  }
}

TEST(TlsIdentityTest, ARoleThatItMayNotHaveIsRefused) {
  TestLab lab;
  const std::string dir = lab.Folder(Role::kViewer, "eve");
  const auto tls = TlsIdentity::Open(dir, {Role::kServer}, RealClock());
  EXPECT_NE(tls.status().message().find("regatta://lab/viewer/eve"),
            tls.status().message().npos);
}

TEST(TlsIdentityTest, AsManyPeersAsAFleetHasAreRemembered) {
  TestLab lab;
  FakeClock clock(RealClock().Wall());
  const auto tls = lab.Open(lab.Folder(Role::kTracker, "t1"), clock);
  // One certificate in many texts: what is remembered goes by the bytes.
  const std::string pem =
      ReadTlsFolder(lab.Folder(Role::kAgent, "a1"), clock.Wall())
          ->certificate.Pem();
  const auto text = [&pem](int i) { return absl::StrCat(pem, i, "\n"); };
  const auto all = [&] {
    const absl::Time begin = RealClock().Wall();
    for (int i = 0; i < 20'000; ++i) EXPECT_TRUE(tls->CheckPeer(text(i)).ok());
    return RealClock().Wall() - begin;
  };
  const absl::Duration judged = all(), remembered = all();
  // A judgement checks a signature, a memory a digest.
  EXPECT_LT(remembered, judged / 4) << judged << " " << remembered;
}

TEST(TlsIdentityTest, KnownPeersAreJudgedAnewEachTime) {
  TestLab lab;
  FakeClock clock(RealClock().Wall());
  const auto tls = lab.Open(lab.Folder(Role::kTracker, "t1"), clock);
  const std::string peer =
      ReadTlsFolder(lab.Folder(Role::kAgent, "a1"), clock.Wall())
          ->certificate.Pem();
  EXPECT_TRUE(tls->CheckPeer(peer).ok());
  EXPECT_TRUE(tls->CheckPeer(peer).ok());
  clock.Advance(absl::Hours(24 * 8));
  EXPECT_EQ(tls->CheckPeer(peer).status().code(),
            absl::StatusCode::kUnauthenticated);
}

}  // namespace
}  // namespace regatta::testing
