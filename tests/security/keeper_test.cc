// Renewal at half of a certificate's life, and news of revocations.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/certs/issue.h"
#include "base/certs/revocation_list.h"
#include "base/certs/tls_folder.h"
#include "proto/security/credential_keeper.h"
#include "tests/security/test_lab.h"

namespace regatta::testing {
namespace {

class KeeperTest : public ::testing::Test {
 protected:
  // As a tracker answers.
  absl::StatusOr<v1::NewCertificate> Renew(const std::string& request) {
    ++asked_;
    if (!answer_.ok()) return answer_;
    auto key = PublicKey::OfRequest(request);
    if (!key.ok()) return key.status();
    auto issued = lab_.authority().Renew(
        other_ ? *other_ : tls_->material()->certificate, *key, clock_.Wall());
    if (!issued.ok()) return issued.status();
    v1::NewCertificate fresh;
    fresh.set_chain_pem(issued->chain_pem);
    fresh.set_ca_pem(lab_.authority().certificate().Pem());
    return fresh;
  }
  std::string Serial() const { return tls_->material()->certificate.Serial(); }

  TestLab lab_;
  FakeClock clock_{RealClock().Wall()};
  std::shared_ptr<TlsIdentity> tls_ =
      lab_.Open(lab_.Folder(Role::kAgent, "a1"), clock_);
  std::optional<Certificate> other_;  // that is renewed instead
  absl::Status answer_;
  std::string lists_;  // of revoked ones; "": what the authority has
  int asked_ = 0;
  CredentialKeeper keeper_{
      tls_,
      {.renew = [this](const std::string& request) { return Renew(request); },
       .revocations = [this]() -> absl::StatusOr<std::string> {
         if (!lists_.empty()) return lists_;
         return lab_.authority().Revocations(clock_.Wall());
       },
       .poll = absl::ZeroDuration()},
      clock_};
};

TEST_F(KeeperTest, RenewsAtHalfOfItsLife) {
  const std::string first = Serial();
  clock_.Advance(absl::Hours(83));
  keeper_.Tick();
  EXPECT_EQ(asked_, 0);
  clock_.Advance(absl::Hours(1.5));
  keeper_.Tick();
  EXPECT_EQ(asked_, 1);
  EXPECT_NE(Serial(), first);
  EXPECT_GT(tls_->material()->certificate.NotAfter(),
            clock_.Wall() + absl::Hours(24 * 6.9));
  // A fresh one is left alone, and the folder holds it.
  clock_.Advance(absl::Hours(1));
  keeper_.Tick();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(ReadTlsFolder(tls_->dir(), clock_.Wall())->certificate.Serial(),
            Serial());
}

TEST_F(KeeperTest, ATrackerThatDoesNotAnswerIsAskedAgainEachMinute) {
  const std::string first = Serial();
  answer_ = absl::UnavailableError("down");
  clock_.Advance(absl::Hours(100));
  for (int i = 0; i < 120; ++i) {
    keeper_.Tick();
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(asked_, 2);
  EXPECT_EQ(Serial(), first);
  answer_ = absl::OkStatus();
  clock_.Advance(absl::Minutes(1));
  keeper_.Tick();
  EXPECT_NE(Serial(), first);
}

TEST_F(KeeperTest, AnAnswerForSomebodyElseIsNotTaken) {
  const std::string first = Serial();
  other_ = ReadTlsFolder(lab_.Folder(Role::kAgent, "a2"), clock_.Wall())
               ->certificate;
  clock_.Advance(absl::Hours(100));
  keeper_.Tick();
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(Serial(), first);
  EXPECT_EQ(ReadTlsFolder(tls_->dir(), clock_.Wall())->certificate.Serial(),
            first);
}

TEST_F(KeeperTest, RevocationsComeInAndOlderListsDoNotUndoThem) {
  const std::string peer =
      ReadTlsFolder(lab_.Folder(Role::kAgent, "bad"), clock_.Wall())
          ->certificate.Pem();
  keeper_.Tick();
  EXPECT_TRUE(tls_->CheckPeer(peer).ok());
  const std::string before = *lab_.authority().Revocations(clock_.Wall());
  ASSERT_TRUE(
      lab_.authority().Revoke("agent/bad", "", clock_.Wall(), "t").ok());
  clock_.Advance(absl::Seconds(16));
  keeper_.Tick();
  EXPECT_FALSE(tls_->CheckPeer(peer).ok());
  lists_ = before;
  clock_.Advance(absl::Seconds(16));
  keeper_.Tick();
  EXPECT_FALSE(tls_->CheckPeer(peer).ok());
  // Nor one of another authority, however new.
  TestLab other;
  for (int i = 0; i < 5; ++i) {
    other.Folder(Role::kAgent, "x");
    ASSERT_TRUE(
        other.authority().Revoke("agent/x", "", clock_.Wall(), "t").ok());
  }
  lists_ = *other.authority().Revocations(clock_.Wall());
  clock_.Advance(absl::Seconds(16));
  keeper_.Tick();
  EXPECT_FALSE(tls_->CheckPeer(peer).ok());
}

TEST_F(KeeperTest, EachOfTwoAuthoritiesHasItsListAndARemovedOnesGoes) {
  const auto peer = [this](TestLab& lab, const std::string& name) {
    return ReadTlsFolder(lab.Folder(Role::kAgent, name), clock_.Wall())
        ->certificate.Pem();
  };
  TestLab next;
  const std::string old_bad = peer(lab_, "bad"), new_bad = peer(next, "bad");
  // The first has revoked much, so that its numbers are far ahead.
  for (int i = 0; i < 5; ++i) {
    lab_.Folder(Role::kAgent, "x");
    ASSERT_TRUE(
        lab_.authority().Revoke("agent/x", "", clock_.Wall(), "t").ok());
  }
  ASSERT_TRUE(
      lab_.authority().Revoke("agent/bad", "", clock_.Wall(), "t").ok());
  const std::string old_ca = lab_.authority().certificate().Pem();
  const std::string new_ca = next.authority().certificate().Pem();
  WriteFile(tls_->dir() + "/ca.pem", old_ca + new_ca);
  keeper_.Tick();
  EXPECT_FALSE(tls_->CheckPeer(old_bad).ok());
  EXPECT_TRUE(tls_->CheckPeer(new_bad).ok());
  // The tracker asks the new one from now on.
  ASSERT_TRUE(
      next.authority().Revoke("agent/bad", "", clock_.Wall(), "t").ok());
  lists_ = *next.authority().Revocations(clock_.Wall());
  clock_.Advance(absl::Seconds(16));
  keeper_.Tick();
  EXPECT_FALSE(tls_->CheckPeer(old_bad).ok());
  EXPECT_FALSE(tls_->CheckPeer(new_bad).ok());
  // The old one goes; what it had revoked is no obstacle.
  const std::string own = next.Folder(tls_->self(), clock_.Wall());
  for (const char* name : {"/cert.pem", "/key.pem"}) {
    WriteFile(tls_->dir() + name, ReadFile(own + name));
  }
  WriteFile(tls_->dir() + "/ca.pem", new_ca);
  const absl::Status taken = tls_->Reload();
  EXPECT_TRUE(taken.ok()) << taken.message();
  EXPECT_FALSE(tls_->CheckPeer(new_bad).ok());
  EXPECT_EQ(tls_->material()->trust.revoked().size(), 1u);
}

}  // namespace
}  // namespace regatta::testing
