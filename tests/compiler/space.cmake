# Spaces, rules and the loops that they emit, against the interpreter.
regatta_test(compiler_space_test
  device_rules_test.cc rules_test.cc simplify_test.cc space_oracle_test.cc space_support.cc
  space_test.cc ../support/loop_interpreter.cc ../support/race_detector.cc
  ../support/warp_matrices.cc
  LIBS regatta_space TIMEOUT 300)
