module @jit_until attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<f64>) -> (tensor<f64>) {
  %8 = "stablehlo.while"(%1) ({^bb0(%2: tensor<f64>):
    %3 = "stablehlo.constant"() {value = dense<10.0> : tensor<f64>} : () -> tensor<f64>
    %4 = "stablehlo.compare"(%2, %3) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f64>, tensor<f64>) -> tensor<i1>
    "stablehlo.return"(%4) : (tensor<i1>) -> ()
  }, {^bb0(%5: tensor<f64>):
    %6 = "stablehlo.constant"() {value = dense<2.0> : tensor<f64>} : () -> tensor<f64>
    %7 = "stablehlo.multiply"(%5, %6) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "stablehlo.return"(%7) : (tensor<f64>) -> ()
  }) : (tensor<f64>) -> (tensor<f64>)
  func.return %8 : tensor<f64>
}
}
