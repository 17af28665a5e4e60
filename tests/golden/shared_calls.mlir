module @jit_shared_calls attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>) -> (tensor<3xf64>) {
  %2 = "func.call"(%1) {callee = @inner} : (tensor<3xf64>) -> (tensor<3xf64>)
  %3 = "stablehlo.cosine"(%1) : (tensor<3xf64>) -> tensor<3xf64>
  %4 = "func.call"(%3) {callee = @inner} : (tensor<3xf64>) -> (tensor<3xf64>)
  %5 = "stablehlo.exponential"(%1) : (tensor<3xf64>) -> tensor<3xf64>
  %6 = "func.call"(%5) {callee = @inner} : (tensor<3xf64>) -> (tensor<3xf64>)
  %7 = "stablehlo.add"(%4, %6) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %8 = "stablehlo.add"(%2, %7) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  func.return %8 : tensor<3xf64>
}
func.func private @inner(%1: tensor<3xf64>) -> (tensor<3xf64>) {
  %2 = "stablehlo.sine"(%1) : (tensor<3xf64>) -> tensor<3xf64>
  %3 = "stablehlo.multiply"(%2, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  func.return %3 : tensor<3xf64>
}
}
