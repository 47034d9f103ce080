# A board's programs for 64-bit ARM, run by QEMU.
regatta_test(arm_board_test arm_board_test.cc
  LIBS regatta_measure regatta_build regatta_run regatta_base)
regatta_arm_test(arm_board_test)
